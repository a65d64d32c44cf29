; A value is right for every gradient exactly when every coefficient is right
;
; Proof only_if_step
; Conversely, take c = 1 at the item v and 0 elsewhere. Then the sums before w are k(v) and K(v) where w > v, and 0
; where not. This is the step of that induction, for both at once.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun k (Int) Real)
(declare-fun K (Int) Real)
(declare-fun c (Int) Real)
(declare-fun held (Int) Real)
(declare-fun single (Int) Real)
(declare-const w Int)
(assert (>= w 0))
(assert (= (held 0) 0.0))
(assert (= (single 0) 0.0))
(assert (= (held (+ w 1)) (+ (held w) (* (k w) (c w)))))
(assert (= (single (+ w 1)) (+ (single w) (* (K w) (c w)))))
(declare-const v Int)
(assert (>= v 0))
(assert (= (c w) (ite (= w v) 1.0 0.0)))
(assert (= (held w) (ite (> w v) (k v) 0.0)))
(assert (= (single w) (ite (> w v) (K v) 0.0)))
(assert (not (and
  (= (held (+ w 1)) (ite (> (+ w 1) v) (k v) 0.0))
  (= (single (+ w 1)) (ite (> (+ w 1) v) (K v) 0.0)))))
(check-sat)
