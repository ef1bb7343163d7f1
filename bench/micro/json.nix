# toJSON and fromJSON of nested values.
let
  value = builtins.genList (n: { id = n; name = "item \"${toString n}\""; tags = [ "a" "b" n null true 1.5 ]; nested = { x.y = n; }; }) 3000;
  round = k: builtins.length (builtins.fromJSON (builtins.toJSON (map (v: v // { inherit k; }) value)));
in builtins.foldl' (acc: k: acc + round k) 0 (builtins.genList (n: n) 30)
