# How many packages there are: the set is built, none is evaluated.
{ np }:
builtins.length (
  builtins.attrNames (
    import np {
      system = "x86_64-linux";
      config = { };
      overlays = [ ];
    }
  )
)
