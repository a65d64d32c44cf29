; Adding values over devices adds their coefficients
;
; Proof no_device
; Without devices both sides are 0: each item adds 0 * c(w) to the right side.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun k (Int Int) Real)
(declare-fun c (Int) Real)
(declare-fun value (Int Int) Real)
(declare-fun total (Int Int) Real)
(declare-fun coefficient (Int Int) Real)
(declare-fun right (Int Int) Real)
(declare-const n Int)
(declare-const w Int)
(assert (and (>= n 0) (>= w 0)))
(define-fun next_value () Bool (= (value n (+ w 1)) (+ (value n w) (* (k n w) (c w)))))
(define-fun next_total () Bool (= (total (+ n 1) w) (+ (total n w) (value n w))))
(define-fun next_coefficient () Bool (= (coefficient (+ n 1) w) (+ (coefficient n w) (k n w))))
(define-fun next_right ((m Int)) Bool (= (right m (+ w 1)) (+ (right m w) (* (coefficient m w) (c w)))))
(assert (and next_value next_total next_coefficient (next_right n) (next_right (+ n 1))))
(assert (and (= (value n 0) 0.0) (= (right n 0) 0.0) (= (right (+ n 1) 0) 0.0)))
(assert (and (= (total 0 w) 0.0) (= (coefficient 0 w) 0.0)))
(assert (= (right 0 w) 0.0))
(assert (= (right 0 (+ w 1)) (+ (right 0 w) (* (coefficient 0 w) (c w)))))
(assert (not (and (= (total 0 w) 0.0) (= (right 0 (+ w 1)) 0.0))))
(check-sat)
