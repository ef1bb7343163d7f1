# `//` of small sets.
let
  base = { a = 1; b = 2; c = 3; };
  step = acc: n: let s = base // { b = n; d = acc; } // { e = 1; }; in s.b + s.e;
in builtins.foldl' step 0 (builtins.genList (n: n) 1200000)
