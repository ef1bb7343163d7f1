# mapAttrs, attrValues, intersectAttrs, removeAttrs, listToAttrs, zipAttrsWith-like work on sets of a few hundred names.
let
  names = builtins.genList (n: "name${toString n}") 300;
  set = builtins.listToAttrs (map (name: { inherit name; value = builtins.stringLength name; }) names);
  half = builtins.removeAttrs set (builtins.genList (n: "name${toString (n * 2)}") 150);
  step = acc: n:
    let
      mapped = builtins.mapAttrs (_: v: v + n) set;
      common = builtins.intersectAttrs half mapped;
    in acc + builtins.foldl' (a: v: a + v) 0 (builtins.attrValues common) + builtins.length (builtins.attrNames mapped);
in builtins.foldl' step 0 (builtins.genList (n: n) 7000)
