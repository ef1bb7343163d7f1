# Recursion as deep as the call limit allows, many times.
let
  down = n: if n == 0 then 0 else 1 + down (n - 1);
  nest = n: if n == 0 then [ ] else [ (nest (n - 1)) ];
  depth = xs: if xs == [ ] then 0 else 1 + depth (builtins.head xs);
in builtins.foldl' (acc: n: acc + down 4000 + depth (nest 1500)) 0 (builtins.genList (n: n) 350)
