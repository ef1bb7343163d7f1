# replaceStrings, substring, split, match, compareVersions, hashing.
let
  text = builtins.concatStringsSep " " (builtins.genList (n: "word-${toString n}.2.3") 400);
  step = acc: n:
    let
      replaced = builtins.replaceStrings [ "word" "." ] [ "w" "-" ] text;
      parts = builtins.split " " replaced;
      version = builtins.match "w-([0-9]+)-(.*)" (builtins.elemAt parts (n * 2));
    in acc + builtins.length parts + builtins.stringLength (builtins.head version) + builtins.compareVersions "1.${toString n}" "1.20"
       + builtins.stringLength (builtins.substring n 20 text) + builtins.stringLength (builtins.hashString "sha256" replaced);
in builtins.foldl' step 0 (builtins.genList (n: n - n / 390 * 390) 2400)
