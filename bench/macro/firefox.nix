# One package's derivation: a large closure of inputs.
{ np }:
(import np {
  system = "x86_64-linux";
  config = { };
  overlays = [ ];
}).firefox.drvPath
