; Optimizers that act per element may be applied to shards
;
; Proof whole_units
; The same for optimizers that see a whole tensor, when whole tensors are dealt out (`on param`): then the tensor is the element
; above, and u is any function of whole tensors.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-sort Element 0)
(declare-sort Value 0)
(declare-fun u (Element Value Value Value) Value)
(declare-fun at (Int Int) Element)
(declare-fun theta (Element) Value)
(declare-fun omega (Element) Value)
(declare-fun g (Element) Value)
(declare-fun updated (Element) Value)
(declare-fun shard_theta (Int Int) Value)
(declare-fun shard_omega (Int Int) Value)
(declare-fun shard_g (Int Int) Value)
(declare-fun shard_updated (Int Int) Value)
(declare-const x Int)
(declare-const j Int)
(define-fun e () Element (at x j))
(assert (= (updated e) (u e (theta e) (omega e) (g e))))
(assert (and (= (shard_theta x j) (theta e)) (= (shard_omega x j) (omega e)) (= (shard_g x j) (g e))))
(assert (= (shard_updated x j) (u (at x j) (shard_theta x j) (shard_omega x j) (shard_g x j))))
(declare-sort Tensor 0)
(declare-fun matrix_update (Tensor Tensor Tensor) Tensor)
(declare-fun t (Int) Tensor)
(declare-fun o (Int) Tensor)
(declare-fun d (Int) Tensor)
(declare-fun local (Int) Int)
(declare-const owned Int)
(assert (= (local j) owned))
(assert (distinct
  (matrix_update (t (local j)) (o (local j)) (d (local j)))
  (matrix_update (t owned) (o owned) (d owned))))
(check-sat)
