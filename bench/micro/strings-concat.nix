# Interpolation, `+`, toString, concatStringsSep, lengths.
let
  line = n: "value ${toString n} of ${toString (n * 2)}: " + "done" + (if n > 10 then "!" else "");
  lines = builtins.genList line 450000;
in builtins.stringLength (builtins.concatStringsSep "\n" lines) + builtins.foldl' (acc: l: acc + builtins.stringLength l) 0 lines
