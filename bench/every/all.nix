# The derivation of every package at the top level, in one process: a name gives its path, null where it has none, false where
# it fails. `without` names those whose failures cannot be caught; `only` names those to look at instead of all.
{
  np,
  without ? [ ],
  only ? null,
}:
let
  pkgs = import np {
    system = "x86_64-linux";
    config = { };
    overlays = [ ];
  };
  names = if only != null then only else builtins.attrNames (removeAttrs pkgs without);
  path =
    name:
    let
      value = pkgs.${name};
      found = builtins.tryEval (if builtins.isAttrs value && value ? drvPath then value.drvPath else null);
    in
    if found.success then found.value else false;
in
builtins.listToAttrs (
  map (name: {
    inherit name;
    value = path name;
  }) names
)
