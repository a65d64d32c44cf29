"""May X be combined with Y? A spec is composed of strategies, decided for every size, and tried with each of
its conditions broken.

`strategies` finds strategies and their axes, `compose` writes the spec, `conditions` breaks it, `answer` decides it and
asks cost/ what it sends, `matrix` does all pairs."""
