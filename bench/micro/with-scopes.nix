# Names from nested `with`.
let
  lib = builtins.listToAttrs (builtins.genList (n: { name = "f${toString n}"; value = n; }) 300);
  pkgs = { a = 1; b = 2; hello = 3; };
  step = acc: n: with lib; with pkgs; let r = [ a b hello f1 f299 ]; in acc + builtins.length r + f7 + f150 + hello + n;
in builtins.foldl' step 0 (builtins.genList (n: n) 1000000)
