; A loop that multiplies its buffer by c is right for every M exactly when c = 1
;
; Witness one_micro_batch
; At M = 1 every c is right, so a test with one micro-batch shows nothing.
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
(assert (turn 0))
(assert (and (= c 7.0) (= (g 1) 2.0)))
(assert (= (buffer 1) (sum 1)))
(check-sat)
