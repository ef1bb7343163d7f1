# Equal arguments written ten times, each asked for the same packages: `count` of them are.
{ nixpkgs, count ? 10 }:
let
  ask = pkgs: map (p: p.drvPath) (with pkgs; [
    hello coreutils gnugrep gnused gawk findutils diffutils gnutar gzip bzip2 xz curl git openssl zlib python3 perl bash cmake jq
  ]);
  all = [
    (import nixpkgs { system = "x86_64-linux"; config = { }; overlays = [ ]; })
    (import nixpkgs { system = "x86_64-linux"; config = { }; overlays = [ ]; })
    (import nixpkgs { system = "x86_64-linux"; config = { }; overlays = [ ]; })
    (import nixpkgs { system = "x86_64-linux"; config = { }; overlays = [ ]; })
    (import nixpkgs { system = "x86_64-linux"; config = { }; overlays = [ ]; })
    (import nixpkgs { system = "x86_64-linux"; config = { }; overlays = [ ]; })
    (import nixpkgs { system = "x86_64-linux"; config = { }; overlays = [ ]; })
    (import nixpkgs { system = "x86_64-linux"; config = { }; overlays = [ ]; })
    (import nixpkgs { system = "x86_64-linux"; config = { }; overlays = [ ]; })
    (import nixpkgs { system = "x86_64-linux"; config = { }; overlays = [ ]; })
  ];
in
builtins.hashString "sha256" (toString (builtins.genList (i: ask (builtins.elemAt all i)) count))
