# A minimal system: the modules' fixpoint. The overlay stands in for packages that need Haskell's, which a tree may lack.
{ np }:
(import (np + "/nixos") {
  system = "x86_64-linux";
  configuration =
    { lib, ... }:
    {
      nixpkgs.overlays = [
        (final: prev: {
          shellcheck = prev.hello;
          shellcheck-minimal = prev.hello // {
            compiler.bootstrapAvailable = false;
          };
        })
      ];
      boot.loader.grub.enable = false;
      fileSystems."/" = {
        device = "/dev/vda";
        fsType = "ext4";
      };
      networking.hostName = "plain";
      system.stateVersion = lib.trivial.release;
    };
}).config.system.build.toplevel.drvPath
