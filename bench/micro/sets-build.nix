# Literals, recursive sets, computed names.
let
  point = x: y: { inherit x y; sum = x + y; };
  record = n: rec { a = n; b = a + 1; c = b + 1; d = (point a c).sum; ${"k" + toString (n - n / 7 * 7)} = d; };
in builtins.foldl' (acc: n: let r = record n; in acc + r.d + builtins.length (builtins.attrNames r)) 0 (builtins.genList (n: n) 300000)
