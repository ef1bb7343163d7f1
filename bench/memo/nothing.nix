# Nothing to share: a file's function called with another argument each time, expensive functions that are never called twice alike.
{ count ? 40000 }:
let
  part = import ./part.nix;
  sum = builtins.foldl' (a: i: a + (part { n = i; name = "x"; }).total) 0 (builtins.genList (i: i) count);
  add = a: b: a + b;
  burn = seed: builtins.foldl' add seed (builtins.genList (i: i * seed) 600);
  steps = n: total: if n == 0 then total else steps (n - 1) (total + n);
in
sum + builtins.foldl' (a: i: a + burn i + steps 500 i) 0 (builtins.genList (i: i) (count / 100))
