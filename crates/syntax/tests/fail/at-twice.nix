a@{ b }@c: d
