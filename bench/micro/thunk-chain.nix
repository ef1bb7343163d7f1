# Cells that wait for other cells: made in one direction, forced in the other.
let
  build = n: acc: if n == 0 then acc else build (n - 1) { value = acc.value + 1; };
  once = seed: (build 2000 { value = seed; }).value;
in builtins.foldl' (acc: n: acc + once n) 0 (builtins.genList (n: n) 600)
