x: y@{ a, y, b }: 1
