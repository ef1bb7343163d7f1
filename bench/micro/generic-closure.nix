# genericClosure over a graph with many repeats.
let
  step = n: if n > 50000 then [ ] else [ { key = n * 2; } { key = n * 2 + 1; } { key = n / 2; } ];
in builtins.foldl' (acc: k: acc + builtins.length (builtins.genericClosure { startSet = [ { key = k + 1; } ]; operator = item: step item.key; })) 0 (builtins.genList (n: n) 6)
