; Reducing shards adds different elements: no value at all from two devices on
;
; Witness two_devices
; N = 2, gradients 3 and 5: both devices get 8, where one device has 3 at the first element.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-fun g (Int) Real)
(declare-fun sum (Int) Real)
(declare-const n Int)
(assert (>= n 0))
(assert (= (sum 0) 0.0))
(assert (= (sum 1) (+ (sum 0) (g 0))))
(assert (= (sum (+ n 1)) (+ (sum n) (g n))))
(assert (and (= n 1) (= (g 0) 3.0) (= (g 1) 5.0)))
(assert (= (sum 2) 8.0))
(assert (distinct (sum 2) (g 0)))
(check-sat)
