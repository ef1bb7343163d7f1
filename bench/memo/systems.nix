# Like flakes that build a package set per system and project: five projects on four systems, twenty uses, four distinct.
{ nixpkgs, projects ? 5, systems ? 4 }:
let
  first = n: list: builtins.genList (builtins.elemAt list) n;
  for = f: names: builtins.listToAttrs (map (name: { inherit name; value = f name; }) names);
  project = name: for (system:
    let pkgs = import nixpkgs { inherit system; config = { allowUnfree = true; }; overlays = [ (final: prev: { }) ]; };
    in pkgs.runCommand name { buildInputs = with pkgs; [ curl git jq python3 openssl ]; } "touch $out"
  ) (first systems [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ]);
  all = for project (first projects [ "one" "two" "three" "four" "five" ]);
in
builtins.hashString "sha256" (toString (map (p: map (d: d.drvPath) (builtins.attrValues p)) (builtins.attrValues all)))
