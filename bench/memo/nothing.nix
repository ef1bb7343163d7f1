# Nothing to share: a file's function called with another argument each time, and calls that are never remembered.
{ count ? 40000 }:
let
  part = import ./part.nix;
  sum = builtins.foldl' (a: i: a + (part { n = i; name = "x"; }).total) 0 (builtins.genList (i: i) count);
  fib = n: if n < 2 then n else fib (n - 1) + fib (n - 2);
in
sum + fib 23
