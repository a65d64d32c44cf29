; Sum where the loss was divided by the count, average where it was not
;
; Witness summed_instead
; D = 1, E = 2, M = 1, t = 1: summing over an axis that was not counted gives 1 where K = 1/2.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
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
(assert (and (= D 1) (= E 2) (= M 1) (= t 1)))
(assert (= T 2.0))
(assert (distinct 1.0 (/ 1.0 T)))
(check-sat)
