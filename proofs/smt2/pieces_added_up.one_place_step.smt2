; Pieces added up place by place are the whole gradient of what treats all places alike, and of nothing else
;
; Proof one_place_step
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun g (Int Int) Real)
(declare-fun row (Int Int) Real)
(declare-fun column (Int Int) Real)
(declare-fun device (Int Int) Real)
(declare-fun all (Int Int) Real)
(declare-const n Int)
(declare-const p Int)
(assert (and (>= n 0) (>= p 0)))
(assert (and (= (row 0 p) 0.0) (= (row (+ n 1) p) (+ (row n p) (g n p)))))
(assert (and (= (column n 0) 0.0) (= (column n (+ p 1)) (+ (column n p) (g n p)))))
(assert (and (= (device n 0) 0.0) (= (device n (+ p 1)) (+ (device n p) (row n p)))))
(assert (and (= (all 0 0) 0.0) (= (all 0 p) 0.0) (= (all 0 (+ p 1)) 0.0)))
(assert (= (all (+ n 1) 0) (+ (all n 0) (column n 0))))
(assert (= (all (+ n 1) p) (+ (all n p) (column n p))))
(assert (= (all (+ n 1) (+ p 1)) (+ (all n (+ p 1)) (column n (+ p 1)))))
(assert (= (all n (+ p 1)) (+ (all n p) (row n p))))
(assert (distinct (all (+ n 1) (+ p 1)) (+ (all (+ n 1) p) (row (+ n 1) p))))
(check-sat)
