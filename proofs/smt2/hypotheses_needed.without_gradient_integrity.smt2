; No hypothesis of the theorem can be dropped
;
; Witness without_gradient_integrity
; Each device feeds its own share, 1 and 3, and nobody adds them: GI01.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-datatypes ((Device 0)) (((a) (b))))
(declare-fun theta (Device) Real)
(declare-fun omega (Device) Real)
(declare-fun fed (Device) Real)
(declare-fun computed (Device) Real)
(declare-fun theta2 (Device) Real)
(declare-fun updates (Device) Bool)
(declare-fun there (Device) Bool)
(declare-fun source (Device) Device)
(define-fun s_theta () Real 10.0)
(define-fun s_omega () Real 1.0)
(define-fun gradient () Real 4.0)
(define-fun U ((t Real) (o Real) (g Real)) Real (- t (+ o g)))
(define-fun start_parameters () Bool (and (= (theta a) s_theta) (= (theta b) s_theta)))
(define-fun start_moments () Bool (and (= (omega a) s_omega) (= (omega b) s_omega)))
(define-fun GI () Bool (and (=> (updates a) (= (fed a) gradient)) (=> (updates b) (= (fed b) gradient))))
(define-fun sources () Bool (and (updates (source a)) (updates (source b))))
(define-fun parameters_there () Bool (and (=> (updates a) (there a)) (=> (updates b) (there b))))
(define-fun update_of ((x Device)) Bool
  (=> (updates x) (= (computed x) (ite (there x) (U (theta x) (omega x) (fed x)) (U 0.0 (omega x) (fed x))))))
(define-fun updates_as_stated () Bool (and (update_of a) (update_of b)))
(define-fun delivered ((x Device)) Bool
  (= (theta2 x) (ite (updates (source x)) (computed (source x)) (theta x))))
(define-fun delivery () Bool (and (delivered a) (delivered b)))
(define-fun right () Bool (and (= (theta2 a) (U s_theta s_omega gradient)) (= (theta2 b) (U s_theta s_omega gradient))))
(assert (and start_parameters start_moments sources parameters_there updates_as_stated delivery))
(assert (and (= (fed a) 1.0) (= (fed b) 3.0) (updates a) (updates b) (= (source a) a) (= (source b) b)))
(assert (and (= (theta2 a) 8.0) (= (theta2 b) 6.0) (not right)))
(check-sat)
