// The call sites of a hunt: each step of a script calls the runtime from a line of its own, so that a finding shows by its line
// which step it means. The number of a site is in its line; `tests/src/hunt/sites.rs` reads them from this file.
#pragma once

#include <functional>

#include "peer.hpp"

namespace app {

// The statement behind the call keeps the compiler from making one call of all.
#define SITE(number)                                                                                                   \
  case number:                                                                                                         \
    call();                                                                                                            \
    asm volatile("# site %0" ::"i"(number));                                                                           \
    return

__attribute__((noinline)) inline void at(unsigned site, const std::function<void()> &call) {
  // clang-format off
  switch (site) {
  SITE(0);
  SITE(1);
  SITE(2);
  SITE(3);
  SITE(4);
  SITE(5);
  SITE(6);
  SITE(7);
  SITE(8);
  SITE(9);
  SITE(10);
  SITE(11);
  SITE(12);
  SITE(13);
  SITE(14);
  SITE(15);
  SITE(16);
  SITE(17);
  SITE(18);
  SITE(19);
  SITE(20);
  SITE(21);
  SITE(22);
  SITE(23);
  SITE(24);
  SITE(25);
  SITE(26);
  SITE(27);
  SITE(28);
  SITE(29);
  SITE(30);
  SITE(31);
  SITE(32);
  SITE(33);
  SITE(34);
  SITE(35);
  SITE(36);
  SITE(37);
  SITE(38);
  SITE(39);
  SITE(40);
  SITE(41);
  SITE(42);
  SITE(43);
  SITE(44);
  SITE(45);
  SITE(46);
  SITE(47);
  SITE(48);
  SITE(49);
  SITE(50);
  SITE(51);
  SITE(52);
  SITE(53);
  SITE(54);
  SITE(55);
  SITE(56);
  SITE(57);
  SITE(58);
  SITE(59);
  SITE(60);
  SITE(61);
  SITE(62);
  SITE(63);
  SITE(64);
  SITE(65);
  SITE(66);
  SITE(67);
  SITE(68);
  SITE(69);
  SITE(70);
  SITE(71);
  SITE(72);
  SITE(73);
  SITE(74);
  SITE(75);
  SITE(76);
  SITE(77);
  SITE(78);
  SITE(79);
  SITE(80);
  SITE(81);
  SITE(82);
  SITE(83);
  SITE(84);
  SITE(85);
  SITE(86);
  SITE(87);
  SITE(88);
  SITE(89);
  SITE(90);
  SITE(91);
  SITE(92);
  SITE(93);
  SITE(94);
  SITE(95);
  SITE(96);
  SITE(97);
  SITE(98);
  SITE(99);
  SITE(100);
  SITE(101);
  SITE(102);
  SITE(103);
  SITE(104);
  SITE(105);
  SITE(106);
  SITE(107);
  SITE(108);
  SITE(109);
  SITE(110);
  SITE(111);
  SITE(112);
  SITE(113);
  SITE(114);
  SITE(115);
  SITE(116);
  SITE(117);
  SITE(118);
  SITE(119);
  SITE(120);
  SITE(121);
  SITE(122);
  SITE(123);
  SITE(124);
  SITE(125);
  SITE(126);
  SITE(127);
  SITE(128);
  SITE(129);
  SITE(130);
  SITE(131);
  SITE(132);
  SITE(133);
  SITE(134);
  SITE(135);
  SITE(136);
  SITE(137);
  SITE(138);
  SITE(139);
  SITE(140);
  SITE(141);
  SITE(142);
  SITE(143);
  SITE(144);
  SITE(145);
  SITE(146);
  SITE(147);
  SITE(148);
  SITE(149);
  SITE(150);
  SITE(151);
  SITE(152);
  SITE(153);
  SITE(154);
  SITE(155);
  SITE(156);
  SITE(157);
  SITE(158);
  SITE(159);
  }
  // clang-format on
  require(false, "no such site");
}

#undef SITE

} // namespace app
