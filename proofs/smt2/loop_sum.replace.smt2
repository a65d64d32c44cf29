; A loop that multiplies its buffer by c is right for every M exactly when c = 1
;
; Witness replace
; c = 0 (`replace`): only the last micro-batch is left.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-fun g (Int) Real)
(declare-fun buffer (Int) Real)
(declare-fun sum (Int) Real)
(declare-const c Real)
(declare-const m Int)
(assert (>= m 0))
(assert (and (= (buffer 0) 0.0) (= (sum 0) 0.0)))
(define-fun turn ((i Int)) Bool (and
  (= (buffer (+ i 1)) (+ (* c (buffer i)) (g (+ i 1))))
  (= (sum (+ i 1)) (+ (sum i) (g (+ i 1))))))
(assert (and (turn 0) (turn 1)))
(assert (and (= c 0.0) (= (g 1) 2.0) (= (g 2) 3.0)))
(assert (and (= (buffer 2) 3.0) (= (sum 2) 5.0)))
(check-sat)
