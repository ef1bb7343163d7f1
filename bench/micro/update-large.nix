# `//` of a large set with small ones, as overlays do, and reads in between.
let
  names = builtins.genList (n: "package-${toString n}") 5000;
  base = builtins.listToAttrs (map (name: { inherit name; value = name; }) names);
  overlay = set: n: set // { "package-${toString n}" = "over"; "extra-${toString n}" = set."package-${toString (n + 1)}"; };
  rounds = builtins.genList (n: n) 4000;
in builtins.length (builtins.attrNames (builtins.foldl' overlay base rounds))
