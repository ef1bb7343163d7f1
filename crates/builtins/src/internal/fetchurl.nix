# What `import <nix/fetchurl.nix>` gives: a download by the builder that is part of Nix. The attributes of the
# derivation are fixed by what others have computed with them, those that do nothing today included.
{
  url,
  name ? baseNameOf (toString url),
  # A hash that names its algorithm, or one of the next four.
  hash ? "",
  sha512 ? "",
  sha1 ? "",
  md5 ? "",
  sha256 ? "",
  outputHash ? if hash != "" then hash else if sha512 != "" then sha512 else if sha1 != "" then sha1 else if md5 != "" then md5 else sha256,
  outputHashAlgo ? if hash != "" then "" else if sha512 != "" then "sha512" else if sha1 != "" then "sha1" else if md5 != "" then "md5" else "sha256",
  executable ? false,
  unpack ? false,
  impure ? false,
  # Taken and not looked at.
  system ? "",
}:

let
  download = {
    system = "builtin";
    builder = "builtin:fetchurl";
    inherit name url unpack executable;
    urls = [ url ];
    outputHashMode = if executable || unpack then "recursive" else "flat";
    preferLocalBuild = true;
    impureEnvVars = [ "http_proxy" "https_proxy" "ftp_proxy" "all_proxy" "no_proxy" ];
  };
  content = if impure then { __impure = true; } else { inherit outputHash outputHashAlgo; };
in
derivation (download // content)
