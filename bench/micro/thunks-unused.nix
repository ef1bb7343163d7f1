# Suspensions that nobody forces.
let
  make = n: { a = n + 1; b = n * 2; c = [ (n - 1) (n - 2) ]; d = { e = n + n; }; inherit n; };
in builtins.foldl' (acc: n: acc + (make n).n) 0 (builtins.genList (n: n) 1400000)
