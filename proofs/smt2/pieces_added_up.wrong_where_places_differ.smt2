; Pieces added up place by place are the whole gradient of what treats all places alike, and of nothing else
;
; Witness wrong_where_places_differ
; Two pieces of one place, with factors 1 and 2: of g = 1 at the first one device has 1, and device 1 makes 2 of it.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
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
(declare-const j0 Real)
(declare-const j1 Real)
(declare-const right Real)
(assert (and (= n 1) (= p 0) (= (g 0 0) 1.0) (= (g 1 0) 0.0)))
(assert (= (row 2 0) (+ (row 1 0) (g 1 0))))
(assert (and (= j0 1.0) (= j1 2.0) (= right (+ (* j0 (g 0 0)) (* j1 (g 1 0))))))
(assert (= (row 1 0) (g 0 0)))
(assert (and (= right 1.0) (= (* j0 (row 2 0)) 1.0) (= (* j1 (row 2 0)) 2.0)))
(check-sat)
