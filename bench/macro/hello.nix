# One package's derivation: mostly the bootstrap of the standard environment.
{ np }:
(import np {
  system = "x86_64-linux";
  config = { };
  overlays = [ ];
}).hello.drvPath
