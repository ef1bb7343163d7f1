# Programs whose derivations are known: `refresh` instantiates every attribute with Nix and keeps the bytes.
# Each names one property of the file format or of the hashing rules.
let
  base = { system = "x86_64-linux"; builder = "/bin/sh"; };
  drv = name: attrs: derivation (base // { inherit name; } // attrs);
  sha256Empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

  fetched = url: drv "fetched" { inherit url; outputHash = sha256Empty; outputHashAlgo = "sha256"; };
  # The same derivation but for where its fixed input comes from: one hash, two files.
  twin = url: drv "twin" { outputs = [ "out" "dev" ]; src = fetched url; };
  chain = n: if n == 0 then drv "chain-0" { } else drv "chain-${toString n}" { previous = chain (n - 1); inherit n; };
in
{
  # Input-addressed
  minimal = drv "minimal" { };
  args = drv "args" { args = [ "-c" "echo \"$1\" > $out\n" "" "tab\there" ]; };
  coerced = drv "coerced" { int = 42; float = 1.5; yes = true; no = false; nothing = null; list = [ 1 "two" [ 3 ] ]; };
  escapes = drv "escapes" { text = "quote \" backslash \\ newline \n return \r tab \t dollar \${x} nul-free"; };
  wide = drv "wide" { text = "grün → 雪"; "na me" = "a=b"; };
  control = drv "control" { text = builtins.fromJSON ''"\u0001\u001f\u007f"''; };
  bytes = drv "bytes" { text = builtins.readFile ./bytes; };
  names = drv "Odd+Name-1.0_rc?=x" { };
  noNulls = drv "no-nulls" { __ignoreNulls = true; gone = null; here = ""; };
  big = drv "big" { text = builtins.concatStringsSep "\n" (builtins.genList (i: "line ${toString i} of \"many\"") 400); };

  # Outputs
  several = drv "several" { outputs = [ "out" "lib" "dev" "bin" ]; };
  noOut = drv "no-out" { outputs = [ "lib" "doc" ]; };
  ownPlaceholder = drv "own-placeholder" { outputs = [ "out" "man" ]; flags = "--prefix=${placeholder "out"} --man=${placeholder "man"}"; };
  pathAsFile = drv "pass-as-file" { passAsFile = [ "long" ]; long = "text"; };

  # Fixed outputs
  fixedFlat = fetched "https://one.example/";
  fixedRecursive = drv "recursive" { outputHash = sha256Empty; outputHashAlgo = "sha256"; outputHashMode = "recursive"; };
  fixedSri = drv "sri" { outputHash = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="; };
  fixedBase32 = drv "base32" { outputHash = "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73"; outputHashAlgo = "sha256"; };
  fixedMd5 = drv "md5" { outputHash = "d41d8cd98f00b204e9800998ecf8427e"; outputHashAlgo = "md5"; };
  fixedSha1 = drv "sha1" { outputHash = "da39a3ee5e6b4b0d3255bfef95601890afd80709"; outputHashAlgo = "sha1"; outputHashMode = "recursive"; };
  fixedSha512 = drv "sha512" {
    outputHash = "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==";
  };
  fixedEmpty = drv "empty-hash" { outputHash = ""; outputHashAlgo = "sha256"; };
  fixedWithInputs = drv "fixed-with-inputs" { outputHash = sha256Empty; outputHashAlgo = "sha256"; tool = drv "tool" { }; };

  # Graphs
  usesOne = drv "uses-one" { dep = drv "dep" { }; };
  usesOutputs = let d = drv "multi" { outputs = [ "out" "dev" "lib" ]; }; in drv "uses-outputs" { inherit (d) dev lib; };
  usesFixed = drv "uses-fixed" { src = fetched "https://one.example/"; };
  usesFixedTwice = drv "uses-fixed-twice" { a = fetched "https://one.example/"; b = fetched "https://two.example/"; };
  equalHashes = drv "equal-hashes" { a = (twin "https://one.example/").dev; b = (twin "https://two.example/").out; };
  equalHashesOther = drv "equal-hashes-other" { a = (twin "https://one.example/").out; b = (twin "https://two.example/").dev; };
  diamond = let d = drv "bottom" { }; in drv "top" { left = drv "left" { inherit d; }; right = drv "right" { inherit d; }; };
  deep = chain 12;

  # Sources and contexts
  usesText = drv "uses-text" { script = builtins.toFile "script.sh" "echo hi\n"; };
  usesTextOfText = let t = builtins.toFile "inner" "inner"; in drv "uses-text-of-text" { t = builtins.toFile "outer" "see ${t}\n"; };
  usesTree = drv "uses-tree" { src = ./source; };
  usesFile = drv "uses-file" { src = "${./source/run}"; };
  usesBoth = drv "uses-both" { src = ./source/a.txt; tool = drv "tool" { }; text = builtins.toFile "t" "t"; };
  usesDrvFile = drv "uses-drv-file" { file = builtins.unsafeDiscardOutputDependency (drv "target" { }).drvPath; };
  usesDrvDeep = drv "uses-drv-deep" { closure = (drv "target" { dep = drv "dep" { }; outputs = [ "out" "x" ]; }).drvPath; };

  # Structured attributes
  structured = drv "structured" { __structuredAttrs = true; n = 1; list = [ "a" 2 null ]; set = { z = 1; a = "q\"\n"; }; outputs = [ "out" "dev" ]; };
  structuredInputs = drv "structured-inputs" { __structuredAttrs = true; dep = drv "dep" { }; args = [ "x" ]; };
  structuredFixed = drv "structured-fixed" { __structuredAttrs = true; outputHash = sha256Empty; outputHashAlgo = "sha256"; outputHashMode = "recursive"; };

  # Content-addressed, deferred, impure
  floating = drv "floating" { __contentAddressed = true; outputHashMode = "recursive"; outputHashAlgo = "sha256"; };
  floatingOutputs = drv "floating-outputs" { __contentAddressed = true; outputHashMode = "recursive"; outputHashAlgo = "sha512"; outputs = [ "out" "dev" ]; };
  floatingFlat = drv "floating-flat" { __contentAddressed = true; outputHashMode = "flat"; outputHashAlgo = "sha1"; };
  deferred = drv "deferred" { dep = drv "floating" { __contentAddressed = true; outputHashMode = "recursive"; outputHashAlgo = "sha256"; }; outputs = [ "out" "log" ]; };
  deferredTwice = drv "deferred-twice" { dep = drv "deferred" { dep = drv "floating" { __contentAddressed = true; outputHashMode = "recursive"; outputHashAlgo = "sha256"; }; }; };
  impure = drv "impure" { __impure = true; outputHashMode = "recursive"; outputHashAlgo = "sha256"; };
}
