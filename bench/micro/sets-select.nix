# Selection from small and large sets, present and absent names.
let
  large = builtins.listToAttrs (builtins.genList (n: { name = "n${toString n}"; value = n; }) 500);
  small = { a.b.c = 1; d = 2; };
  step = acc: n: acc + small.a.b.c + small.d + large.n17 + large.n499 + (large.missing or 1) + (if small ? x.y then 1 else 0);
in builtins.foldl' step 0 (builtins.genList (n: n) 1300000)
