# Calls of several arguments, whole and in part.
let
  add3 = a: b: c: a + b + c;
  loop = n: acc: if n == 0 then acc else let partial = add3 n; in loop (n - 1) (partial 1 acc - add3 n 1 0);
in builtins.foldl' (acc: n: acc + loop 400 n) 0 (builtins.genList (n: n) 2000)
