# The function `derivation`.
#
# `derivationStrict` turns the attributes into a derivation and gives the paths; this
# function wraps it lazily, so that a package can be looked at (its name, its meta data,
# the attributes it was made of) at no cost, and the derivation is made when a path of
# it is asked for.
#
# The result is the value of the first output. It has:
#
#   - every attribute that was given;
#   - one attribute per output, the value of that output;
#   - `all`, the list of these values;
#   - `drvAttrs`, what was given, unchanged;
#   - `type`, by which others know a derivation;
#   - `outputName`, `outPath` and `drvPath` of this output.
#
# The values of the outputs differ in nothing but the last group.
#
# How it is evaluated is part of what it does:
#
#   - `outputs` is looked at first, its elements when the set of outputs is made;
#   - `derivationStrict` runs at most once, however many outputs there are;
#   - nothing but `outPath` and `drvPath` makes it run.
#
# Error messages quote lines of this text where Nix quotes its own, so the lines that
# they can quote stay where they are, by number and by column: see the tests of failing
# derivations.

drvAttrs@{ outputs ? [ "out" ], ... }:

# The names below are visible in traces.

let

  # Runs when the first path is asked for.

  strict = derivationStrict drvAttrs;

  perOutput = map describe outputs;

  commonAttrs = drvAttrs // builtins.listToAttrs perOutput // {
    inherit drvAttrs;
    all = map (output: output.value) perOutput;
  };

  # One output, in the form that `listToAttrs` takes.
  describe = outputName: {
    name = outputName;
    value = commonAttrs // {
      outPath = strict.${outputName};
      drvPath = strict.drvPath;
      type = "derivation";
      inherit outputName;
    };
  };

in
(builtins.head perOutput).value
