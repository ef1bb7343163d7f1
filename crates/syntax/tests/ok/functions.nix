[
  (x: y: x)
  ({ }: 1)
  ({ ... }: 1)
  ({ b, a ? b, }: a)
  ({ b, a ? { c }: c, ... }: a)
  (all@{ b, ... }: all)
  ({ b }@all: all)
  ({ }@all: all)
  { }
  { a.b = 1; }
  (x: with x; assert y; if a then b else c)
  (let a = 1; inherit (a) b; in a)
  (let in 1)
  let { x = 1; body = x; }
  __curPos
]
