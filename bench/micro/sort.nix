# Sorting numbers and strings, ascending, descending and by key.
let
  noise = n: let x = n * 7919 + 13; in x - x / 10007 * 10007;
  numbers = builtins.genList noise 100000;
  strings = map (n: "s${toString n}") (builtins.genList noise 10000);
in [
  (builtins.elemAt (builtins.sort (a: b: a < b) numbers) 777)
  (builtins.elemAt (builtins.sort (a: b: b < a) numbers) 777)
  (builtins.elemAt (builtins.sort builtins.lessThan strings) 777)
  (builtins.elemAt (builtins.sort (a: b: a.key < b.key) (map (key: { inherit key; }) numbers)) 777).key
]
