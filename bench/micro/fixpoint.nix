# A package set closed over itself, extended by overlays, in the manner of nixpkgs.
let
  fix = f: let x = f x; in x;
  extends = overlay: base: final: let prev = base final; in prev // overlay final prev;
  base = final: builtins.listToAttrs (builtins.genList (n: {
    name = "p${toString n}";
    value = { name = "p${toString n}"; deps = if n == 0 then [ ] else [ final."p${toString (n - 1)}" final."p${toString (n / 2)}" ]; size = 1 + builtins.foldl' (a: d: a + d.level) 0 (final."p${toString n}".deps); level = n; };
  }) 200);
  overlay = k: final: prev: { "p${toString (k * 3)}" = prev."p${toString (k * 3)}" // { level = k; patched = true; }; };
  set = k: fix (builtins.foldl' (acc: o: extends o acc) base (builtins.genList (n: overlay (n + k - k / 40 * 40)) 12));
in builtins.foldl' (acc: k: let s = set k; in acc + builtins.foldl' (a: n: a + s.${n}.size) 0 (builtins.attrNames s)) 0 (builtins.genList (n: n) 1100)
