; Tensor and data parallelism together are right for every size
;
; Proof vectors
; On R copies along tp: a mean leaves k, a sum is right only at R = 1.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const D Int)
(declare-const R Int)
(declare-const M Int)
(declare-const t Int)
(declare-const f Real)
(declare-const m Real)
(declare-const k Real)
(declare-const K Real)
(declare-const shares Real)
(assert (and (>= D 1) (>= R 1) (>= M 1) (>= t 1)))
(assert (= (* f (to_real t)) 1.0))
(assert (= (* m (to_real M)) f))
(assert (= shares 1.0))
(assert (= (* k (to_real D)) (* m shares)))
(assert (= (* K (to_real D) (to_real M) (to_real t)) 1.0))
(declare-const mean Real)
(declare-const sum Real)
(assert (and (= k K) (> K 0.0)))
(assert (= sum (* (to_real R) k)))
(assert (= (* mean (to_real R)) sum))
(assert (not (and (= mean K) (= (= sum K) (= R 1)))))
(check-sat)
