# map, filter, foldl', genList, elem, all, any over long lists.
let
  numbers = builtins.genList (n: n) 400000;
  even = n: n / 2 * 2 == n;
  round = k:
    let xs = map (n: n * k) (builtins.filter even numbers);
    in builtins.foldl' (a: b: a + b) 0 xs + (if builtins.all (x: x >= 0) xs then 1 else 0) + builtins.length (builtins.filter (x: builtins.elem x [ 0 2 4 ]) xs);
in round 1 + round 2 + round 3
