; No side condition of composition can be dropped
;
; Witness tied_weights_cut_first
; Tied weights lie at another place of the flat buffer of each stage. Cut over two devices first, device 0 has element 0 of the
; first stage (gradient 3) and element 1 of the last (gradient 5). Reduced over the stages they are added, where element 0
; has 3 on the first stage and 4 on the last: 7.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const x Real)
(declare-const y Real)
(define-fun sum ((a Real) (b Real)) Real (+ a b))
(define-fun mean ((a Real) (b Real)) Real (/ (+ a b) 2.0))
(assert (= x (sum 3.0 5.0)))
(assert (= y (sum 3.0 4.0)))
(assert (and (= x 8.0) (= y 7.0)))
(check-sat)
