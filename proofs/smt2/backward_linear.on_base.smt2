; Backward passes are linear: a factor of the gradient that arrives is a factor of the weights' gradients
;
; Proof on_base
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun k (Int) Real)
(declare-fun c1 (Int) Real)
(declare-fun c2 (Int) Real)
(declare-fun s1 (Int) Real)
(declare-fun s2 (Int) Real)
(declare-fun on (Int) Real)
(declare-fun weights (Int) Real)
(declare-const j1 Real)
(declare-const j2 Real)
(declare-const a Real)
(declare-const p Int)
(assert (>= p 0))
(assert (and (= (s1 0) 0.0) (= (s2 0) 0.0) (= (on 0) 0.0) (= (weights 0) 0.0)))
(assert (= (s1 (+ p 1)) (+ (s1 p) (* (k p) (c1 p)))))
(assert (= (s2 (+ p 1)) (+ (s2 p) (* (k p) (c2 p)))))
(assert (= (on (+ p 1)) (+ (on p) (* (k p) (+ (* j1 (c1 p)) (* j2 (c2 p)))))))
(assert (= (weights (+ p 1)) (+ (weights p) (* (k p) (* a (c1 p))))))
(assert (distinct (+ (* j1 (s1 0)) (* j2 (s2 0))) (on 0)))
(check-sat)
