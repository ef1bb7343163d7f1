# `++`, concatLists, concatMap, head and tail.
let
  numbers = builtins.genList (n: n) 8000;
  grown = builtins.foldl' (acc: n: acc ++ [ n ]) [ ] numbers;
  walk = xs: acc: if xs == [ ] then acc else walk (builtins.tail xs) (acc + builtins.head xs);
  pairs = builtins.concatMap (n: [ n (n + 1) ]) (builtins.genList (n: n) 700000);
in walk grown 0 + builtins.length pairs + builtins.length (builtins.concatLists (map (n: [ n n n ]) (builtins.genList (n: n) 700000)))
