package pattern

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sandwich/runtime/grammar/internal/automaton"
)

// propertySet returns the characters of a property of ECMA-262 that RE2 does not support or names
// differently. ok is false for other names. Recent emoji are excluded unless wide is set, because
// engines know only those of their Unicode version.
func propertySet(name string, wide bool) (set automaton.Runes, ok bool) {
	switch name {
	case "Any":
		return automaton.AnyRune, true
	case "ASCII":
		return automaton.Runes{{Lo: 0, Hi: 0x7F}}, true
	case "Assigned":
		var all automaton.Runes
		for _, t := range unicode.Categories {
			all = append(all, tableRunes(t)...)
		}
		return all.InOrder().Both(automaton.AnyRune), true
	case "Emoji", "Extended_Pictographic", "Emoji_Presentation", "Emoji_Modifier", "Emoji_Modifier_Base",
		"Emoji_Component", "ExtPict", "EPres", "EMod", "EBase", "EComp":
		set = emojiRunes(name)
		if !wide && name != "Extended_Pictographic" && name != "ExtPict" {
			set = set.Except(newEmoji)
		}
		return set, true
	}
	of, ok := derived[name]
	if !ok {
		return nil, false
	}
	for _, t := range of {
		set = append(set, tableRunes(t)...)
	}
	set = set.InOrder()
	if strings.HasPrefix(name, "ID") || strings.HasPrefix(name, "XID") {
		set = set.Except(append(tableRunes(unicode.Pattern_Syntax),
			tableRunes(unicode.Pattern_White_Space)...).InOrder())
	}
	return set, true
}

// newEmoji are blocks to which Unicode adds emoji.
var newEmoji = automaton.Runes{{Lo: 0x1F6D8, Hi: 0x1F6DC}, {Lo: 0x1F7F0, Hi: 0x1F7F0}, {Lo: 0x1FA70, Hi: 0x1FAFF}}

// derived maps properties to the tables of which they are unions.
var derived = func() map[string][]*unicode.RangeTable {
	alpha := []*unicode.RangeTable{unicode.L, unicode.Nl, unicode.Other_Alphabetic}
	upper := []*unicode.RangeTable{unicode.Lu, unicode.Other_Uppercase}
	lower := []*unicode.RangeTable{unicode.Ll, unicode.Other_Lowercase}
	start := []*unicode.RangeTable{unicode.L, unicode.Nl, unicode.Other_ID_Start}
	more := slices.Concat(start, []*unicode.RangeTable{unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc,
		unicode.Other_ID_Continue})
	of := map[string][]*unicode.RangeTable{"Alphabetic": alpha, "Alpha": alpha, "Uppercase": upper, "Upper": upper,
		"Lowercase": lower, "Lower": lower, "Cased": slices.Concat(upper, lower, []*unicode.RangeTable{unicode.Lt}),
		"ID_Start": start, "IDS": start, "XID_Start": start, "XIDS": start, "ID_Continue": more, "IDC": more,
		"XID_Continue": more, "XIDC": more, "Math": {unicode.Sm, unicode.Other_Math},
		"space": {unicode.White_Space}, "AHex": {unicode.ASCII_Hex_Digit}, "Hex": {unicode.Hex_Digit},
		"RI": {unicode.Regional_Indicator}, "VS": {unicode.Variation_Selector}, "Dia": {unicode.Diacritic},
		"Ext": {unicode.Extender}, "Ideo": {unicode.Ideographic}, "QMark": {unicode.Quotation_Mark}}
	for name, t := range unicode.Properties {
		if !strings.HasPrefix(name, "Other_") {
			of[name] = []*unicode.RangeTable{t}
		}
	}
	return of
}()

func tableRunes(t *unicode.RangeTable) (out automaton.Runes) {
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, automaton.RuneRange{Lo: lo, Hi: hi})
			return
		}
		for r := lo; r <= hi; r += stride {
			out = append(out, automaton.RuneRange{Lo: r, Hi: r})
		}
	}
	for _, r := range t.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return out
}

// emojiRunes returns the characters of a property of Unicode's emoji-data (17.0), for which Go has
// no tables.
func emojiRunes(name string) (out automaton.Runes) {
	text := map[string]string{"Emoji": emojiText, "Emoji_Presentation": emojiShown, "EPres": emojiShown,
		"Emoji_Modifier": emojiSkin, "EMod": emojiSkin, "Emoji_Modifier_Base": emojiBases, "EBase": emojiBases,
		"Emoji_Component": emojiParts, "EComp": emojiParts}[name]
	if text == "" {
		text = pictographs
	}
	for _, x := range strings.Fields(text) {
		from, to, two := strings.Cut(x, "-")
		if !two {
			to = from
		}
		lo, _ := strconv.ParseUint(from, 16, 32)
		hi, _ := strconv.ParseUint(to, 16, 32)
		out = append(out, automaton.RuneRange{Lo: rune(lo), Hi: rune(hi)})
	}
	return out
}

const (
	emojiText = `23 2a 30-39 a9 ae 203c 2049 2122 2139 2194-2199 21a9-21aa 231a-231b 2328 23cf 23e9-23f3 23f8-23fa 24c2
		25aa-25ab 25b6 25c0 25fb-25fe 2600-2604 260e 2611 2614-2615 2618 261d 2620 2622-2623 2626 262a 262e-262f
		2638-263a 2640 2642 2648-2653 265f-2660 2663 2665-2666 2668 267b 267e-267f 2692-2697 2699 269b-269c
		26a0-26a1 26a7 26aa-26ab 26b0-26b1 26bd-26be 26c4-26c5 26c8 26ce-26cf 26d1 26d3-26d4 26e9-26ea 26f0-26f5
		26f7-26fa 26fd 2702 2705 2708-270d 270f 2712 2714 2716 271d 2721 2728 2733-2734 2744 2747 274c 274e
		2753-2755 2757 2763-2764 2795-2797 27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 3030 303d 3297
		3299 1f004 1f0cf 1f170-1f171 1f17e-1f17f 1f18e 1f191-1f19a 1f1e6-1f1ff 1f201-1f202 1f21a 1f22f
		1f232-1f23a 1f250-1f251 1f300-1f321 1f324-1f393 1f396-1f397 1f399-1f39b 1f39e-1f3f0 1f3f3-1f3f5
		1f3f7-1f4fd 1f4ff-1f53d 1f549-1f54e 1f550-1f567 1f56f-1f570 1f573-1f57a 1f587 1f58a-1f58d 1f590
		1f595-1f596 1f5a4-1f5a5 1f5a8 1f5b1-1f5b2 1f5bc 1f5c2-1f5c4 1f5d1-1f5d3 1f5dc-1f5de 1f5e1 1f5e3 1f5e8
		1f5ef 1f5f3 1f5fa-1f64f 1f680-1f6c5 1f6cb-1f6d2 1f6d5-1f6d8 1f6dc-1f6e5 1f6e9 1f6eb-1f6ec 1f6f0
		1f6f3-1f6fc 1f7e0-1f7eb 1f7f0 1f90c-1f93a 1f93c-1f945 1f947-1f9ff 1fa70-1fa7c 1fa80-1fa8a 1fa8e-1fac6
		1fac8 1facd-1fadc 1fadf-1faea 1faef-1faf8`
	emojiShown = `231a-231b 23e9-23ec 23f0 23f3 25fd-25fe 2614-2615 2648-2653 267f 2693 26a1 26aa-26ab 26bd-26be 26c4-26c5
		26ce 26d4 26ea 26f2-26f3 26f5 26fa 26fd 2705 270a-270b 2728 274c 274e 2753-2755 2757 2795-2797 27b0 27bf
		2b1b-2b1c 2b50 2b55 1f004 1f0cf 1f18e 1f191-1f19a 1f1e6-1f1ff 1f201 1f21a 1f22f 1f232-1f236 1f238-1f23a
		1f250-1f251 1f300-1f320 1f32d-1f335 1f337-1f37c 1f37e-1f393 1f3a0-1f3ca 1f3cf-1f3d3 1f3e0-1f3f0 1f3f4
		1f3f8-1f43e 1f440 1f442-1f4fc 1f4ff-1f53d 1f54b-1f54e 1f550-1f567 1f57a 1f595-1f596 1f5a4 1f5fb-1f64f
		1f680-1f6c5 1f6cc 1f6d0-1f6d2 1f6d5-1f6d8 1f6dc-1f6df 1f6eb-1f6ec 1f6f4-1f6fc 1f7e0-1f7eb 1f7f0
		1f90c-1f93a 1f93c-1f945 1f947-1f9ff 1fa70-1fa7c 1fa80-1fa8a 1fa8e-1fac6 1fac8 1facd-1fadc 1fadf-1faea
		1faef-1faf8`
	emojiSkin  = `1f3fb-1f3ff`
	emojiBases = `261d 26f9 270a-270d 1f385 1f3c2-1f3c4 1f3c7 1f3ca-1f3cc 1f442-1f443 1f446-1f450 1f466-1f478 1f47c
		1f481-1f483 1f485-1f487 1f48f 1f491 1f4aa 1f574-1f575 1f57a 1f590 1f595-1f596 1f645-1f647 1f64b-1f64f
		1f6a3 1f6b4-1f6b6 1f6c0 1f6cc 1f90c 1f90f 1f918-1f91f 1f926 1f930-1f939 1f93c-1f93e 1f977 1f9b5-1f9b6
		1f9b8-1f9b9 1f9bb 1f9cd-1f9cf 1f9d1-1f9dd 1fac3-1fac5 1faf0-1faf8`
	emojiParts  = `23 2a 30-39 200d 20e3 fe0f 1f1e6-1f1ff 1f3fb-1f3ff 1f9b0-1f9b3 e0020-e007f`
	pictographs = `a9 ae 203c 2049 2122 2139 2194-2199 21a9-21aa 231a-231b 2328 23cf 23e9-23f3 23f8-23fa 24c2 25aa-25ab
		25b6 25c0 25fb-25fe 2600-2604 260e 2611 2614-2615 2618 261d 2620 2622-2623 2626 262a 262e-262f 2638-263a
		2640 2642 2648-2653 265f-2660 2663 2665-2666 2668 267b 267e-267f 2692-2697 2699 269b-269c 26a0-26a1 26a7
		26aa-26ab 26b0-26b1 26bd-26be 26c4-26c5 26c8 26ce-26cf 26d1 26d3-26d4 26e9-26ea 26f0-26f5 26f7-26fa 26fd
		2702 2705 2708-270d 270f 2712 2714 2716 271d 2721 2728 2733-2734 2744 2747 274c 274e 2753-2755 2757
		2763-2764 2795-2797 27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 3030 303d 3297 3299 1f004
		1f02c-1f02f 1f094-1f09f 1f0af-1f0b0 1f0c0 1f0cf-1f0d0 1f0f6-1f0ff 1f170-1f171 1f17e-1f17f 1f18e
		1f191-1f19a 1f1ae-1f1e5 1f201-1f20f 1f21a 1f22f 1f232-1f23a 1f23c-1f23f 1f249-1f25f 1f266-1f321
		1f324-1f393 1f396-1f397 1f399-1f39b 1f39e-1f3f0 1f3f3-1f3f5 1f3f7-1f3fa 1f400-1f4fd 1f4ff-1f53d
		1f549-1f54e 1f550-1f567 1f56f-1f570 1f573-1f57a 1f587 1f58a-1f58d 1f590 1f595-1f596 1f5a4-1f5a5 1f5a8
		1f5b1-1f5b2 1f5bc 1f5c2-1f5c4 1f5d1-1f5d3 1f5dc-1f5de 1f5e1 1f5e3 1f5e8 1f5ef 1f5f3 1f5fa-1f64f
		1f680-1f6c5 1f6cb-1f6d2 1f6d5-1f6e5 1f6e9 1f6eb-1f6f0 1f6f3-1f6ff 1f7da-1f7ff 1f80c-1f80f 1f848-1f84f
		1f85a-1f85f 1f888-1f88f 1f8ae-1f8af 1f8bc-1f8bf 1f8c2-1f8cf 1f8d9-1f8ff 1f90c-1f93a 1f93c-1f945
		1f947-1f9ff 1fa58-1fa5f 1fa6e-1faff 1fc00-1fffd`
)
