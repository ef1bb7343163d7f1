f: x: y: [
  (f x y)
  ((f x) y)
  (((f x) y) (f y) x)
  (f (x y))
  (f x.y or x)
  (f x.y or x.z or f y)
  (<nixpkgs> { })
  <nixpkgs/lib/a.nix>
  (f or)
  (f or x)
  ((f x) or)
  f.or
  { or = 1; }.or
]
