# Set patterns with defaults, ellipsis and `@`; functors.
let
  f = { a, b ? a + 1, c ? 3, ... }@args: a + b + c + (args.d or 0);
  g = { x, y }: x * y;
  functor = { __functor = self: n: n + self.offset; offset = 5; };
  step = acc: n: acc + f { a = n; d = 1; } + f { a = 1; b = 2; c = n; } + g { x = n; y = 2; } + functor n;
in builtins.foldl' step 0 (builtins.genList (n: n) 500000)
