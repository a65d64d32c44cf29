; Sum where the loss was divided by the count, average where it was not
;
; Proof counted_micro_batches
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const D Int)
(declare-const E Int)
(declare-const M Int)
(declare-const t Int)
(assert (and (>= D 1) (>= E 1) (>= M 1) (>= t 1)))
(define-fun d () Real (to_real D))
(define-fun e () Real (to_real E))
(define-fun m () Real (to_real M))
(define-fun r () Real (to_real t))
(define-fun T () Real (* d e m r))
(declare-const f Real)
(declare-const K Real)
(assert (= (* f (* d m r) e) 1.0))
(assert (= (* K T) 1.0))
(assert (distinct f K))
(check-sat)
