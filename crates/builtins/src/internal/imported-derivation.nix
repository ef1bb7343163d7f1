# The value of an imported `.drv` file, given its path, name and the strings of its outputs.
imported@{ drvPath, name, outputs, ... }:

let
  byOutput = map one outputs;
  shared = builtins.listToAttrs byOutput // {
    type = "derivation";
    inherit drvPath name;
    all = map (output: output.value) byOutput;
  };
  one = outputName: {
    name = outputName;
    value = shared // {
      inherit outputName;
      outPath = imported.${outputName};
    };
  };
in
(builtins.head byOutput).value
