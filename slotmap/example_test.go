package slotmap_test

import (
	"errors"
	"fmt"

	"github.com/shardkit/shardkit/slotmap"
)

func Example() {
	key := "subs:{1234567890}"               // the sharded key that the caller holds
	replica := slotmap.KeyFor("active", key) // the copy of "active" in its slot
	fmt.Println("SINTER", key, replica)
	fmt.Println(slotmap.SameSlot(key, replica))
	// Output:
	// SINTER subs:{1234567890} active:{69234}
	// true
}

func ExampleSlot() {
	fmt.Println(slotmap.Slot("foo"))
	fmt.Println(slotmap.Slot("user:{1000}:followers"), slotmap.Slot("user:{1000}:following"))
	// Output:
	// 12182
	// 11326 11326
}

func ExampleHashTag() {
	for _, key := range []string{"subs:{42}", "subs:42", "{a}{b}", "{}{b}", "{{a}}"} {
		fmt.Println(key, slotmap.HashTag(key))
	}
	// Output:
	// subs:{42} 42
	// subs:42 subs:42
	// {a}{b} a
	// {}{b} {}{b}
	// {{a}} {a
}

func ExampleTag() {
	fmt.Println(slotmap.Tag(0), slotmap.Slot(slotmap.Tag(0)))
	fmt.Println(slotmap.Tag(slotmap.Slots-1), slotmap.Slot(slotmap.Tag(slotmap.Slots-1)))
	// Output:
	// 3560 0
	// 39296 16383
}

func ExampleAppendKeyFor() {
	key := make([]byte, 0, 64)
	for slot := range uint16(3) {
		key = slotmap.AppendKeyFor(key[:0], "active", slot)
		fmt.Printf("%s\n", key)
	}
	// Output:
	// active:{3560}
	// active:{22179}
	// active:{48756}
}

func ExampleValidName() {
	err := slotmap.ValidName("active:{eu}")
	var e *slotmap.NameError
	fmt.Println(errors.As(err, &e))
	fmt.Println(err)
	// Output:
	// true
	// slotmap: the name "active:{eu}" holds a brace: remove it, since the first "{" of a key decides its slot
}

func ExampleCheckSameSlot() {
	err := slotmap.CheckSameSlot("subs:{42}", "active")
	var e *slotmap.CrossSlotError
	if errors.As(err, &e) {
		for _, k := range e.Keys {
			fmt.Println(k.Slot, k.Key)
		}
	}
	// Output:
	// 8000 subs:{42}
	// 15924 active
}
