"""How the operations of a layer lie on the mesh: derived from where weights lie and what splits the work.

`planning` decides per axis what is cut and what crosses between devices, `overrides` puts in what a person
says of an implementation, `walk` follows values and gradients through the result with exact factors.
Nothing here knows a solver: the factors are expressions, and the conditions are decided in prove/.

Codes of the problems found here:

    PL380  an axis splits a dimension that a block's tensors do not have, or of which weights get all
    PL381  weights cut on a dimension that an operation does not have, or has on both sides
    PL382  an operation that cannot work with its weights cut so
    PL383  activations stated otherwise than they are derived
    PL384  an override that does not fit its boundary
    PL385  one group of weights, and gradients of different kinds
    PL386  axes that cut a tensor in another order than weights
    PL387  some activations of a block recomputed or on the host, and others not
    PL388  an override, and several losses
    PL389  what comes back to weights, or to the layers of a block, depends on what is not stated
"""
