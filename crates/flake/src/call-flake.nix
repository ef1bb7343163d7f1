# Calls the flake at the root of a lock file. Each node becomes a value when something asks for it.
#
# lockText: the lock file. given: what is already fetched, by key: { sourceInfo, dir }. fetch: fetches a locked input.
lockText: given: fetch:
let
  lock = builtins.fromJSON lockText;

  # A spec is a key, or names of inputs to walk from the root.
  keyOf = spec: if builtins.isString spec then spec else builtins.foldl' walk lock.root spec;
  walk = key: name: keyOf lock.nodes.${key}.inputs.${name};

  called = builtins.mapAttrs call lock.nodes;

  call =
    key: node:
    let
      locked = node.locked or { };
      isGiven = given ? ${key};
      # Such an input lies in the tree of the one that names it.
      isWithin = !isGiven && locked.type or "" == "path" && builtins.substring 0 1 locked.path != "/";
      around = called.${keyOf node.parent};

      sourceInfo =
        if isGiven then
          given.${key}.sourceInfo
        else if isWithin then
          around.sourceInfo
        else
          fetch (node.info or { } // builtins.removeAttrs locked [ "dir" ]);

      base = if isWithin then around.outPath else sourceInfo.outPath;
      below = if isWithin then locked.path else given.${key}.dir or locked.dir or "";
      outPath = if below == "" then base else base + "/" + below;

      source = import (outPath + "/flake.nix");
      inputs = builtins.mapAttrs (_: spec: called.${keyOf spec}.value) (node.inputs or { });
      outputs = source.outputs (inputs // { self = flake; });

      flake =
        outputs
        // sourceInfo
        // {
          inherit
            inputs
            outPath
            outputs
            sourceInfo
            ;
          _type = "flake";
        };
    in
    {
      inherit outPath sourceInfo;
      value =
        if !(node.flake or true) then
          sourceInfo // { inherit outPath sourceInfo; }
        else
          assert builtins.isFunction source.outputs;
          flake;
    };
in
called.${lock.root}.value
